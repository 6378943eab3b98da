# Login shells: /etc/profile has set PATH anew. The entry wrote what the container was started with.
if [ -r /run/yoke/environment.sh ]; then
  . /run/yoke/environment.sh
else
  case :$PATH: in
    *:/opt/venv/bin:*) ;;
    *) export PATH="/opt/venv/bin:/opt/yoke/bin:${CUDA_HOME:+$CUDA_HOME/bin:}$PATH" ;;
  esac
fi
